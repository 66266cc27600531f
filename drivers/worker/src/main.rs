//! The worker binary: started by `campaign`, one process for one task.

fn main() {
    let arguments: Vec<_> = std::env::args_os().skip(1).collect();
    match arguments.as_slice() {
        [] => worker::process::exit(worker::serve::main()),
        [flag] if flag == "--build-id" => println!("{}", protocol::BUILD_ID),
        _ => {
            eprintln!("usage: worker [--build-id]; everything else comes on standard input");
            worker::process::exit(2);
        }
    }
}
